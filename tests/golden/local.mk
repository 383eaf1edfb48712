# tests/golden/
