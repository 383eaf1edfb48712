# tests/system/
