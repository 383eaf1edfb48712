# unit tests of src/shell
