# tests/bench/
