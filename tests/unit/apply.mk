# unit tests of src/apply
