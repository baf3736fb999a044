"""The share of a long test's cases that is run: with TEST_SHARE=K/N (0 <= K < N, as CI sets it) about every Nth, other ones for each K; else all."""
import os
import random

FIRST, EVERY = map(int, os.environ.get("TEST_SHARE", "0/1").split("/"))


def of(cases):
    drawn = random.Random(0)  # not each Nth: cases are pairs of a model and one of N chips
    return [case for case in cases if drawn.randrange(EVERY) == FIRST]
