# unit tests of src/subnet
