"""Wavefronts of one request, counted word by word in plain Python."""


def passes(words):
    """Different words of the bank that has most of them, of 32 banks."""
    banks = {}
    for word in words:
        banks.setdefault(word % 32, set()).add(word)
    return max(map(len, banks.values()))
