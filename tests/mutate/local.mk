# tests/mutate: a script for people. Of make check is only what tests its generator.
TESTS += tests/mutate/check_generate.py
EXTRA_DIST += tests/mutate/mutate tests/mutate/wrongs.py tests/mutate/generate.py tests/mutate/check_generate.py
