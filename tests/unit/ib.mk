# unit tests of src/ib
