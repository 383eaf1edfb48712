# unit tests of src/util
