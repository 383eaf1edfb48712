# tests/mutate: a script for people; not part of make check.
EXTRA_DIST += tests/mutate/mutate tests/mutate/wrongs.py
