"""Selects a share of a long test's cases: with TEST_SHARE=K/N (0 <= K < N, as CI sets it) about every Nth, others for each K; else all."""
import os
import random

FIRST, EVERY = map(int, os.environ.get("TEST_SHARE", "0/1").split("/"))


def of(cases):
    drawn = random.Random(0)  # at random, since every Nth case would have the same one of N chips
    return [case for case in cases if drawn.randrange(EVERY) == FIRST]
