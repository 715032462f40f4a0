"""Syntax trees drawn at random, of sentences that make sense."""
