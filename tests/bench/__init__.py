"""How fast the library is, beside what else one would use, on the same work in the same run: make bench."""
