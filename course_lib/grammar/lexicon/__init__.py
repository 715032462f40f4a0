"""The words: what each is in English and German, and how it inflects."""
