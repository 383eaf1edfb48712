# unit tests of src/plan
