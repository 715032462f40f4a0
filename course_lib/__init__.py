"""The Transformer of "Attention Is All You Need", built to be read: the companion library of the course."""
