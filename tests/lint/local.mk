# tests/lint/
