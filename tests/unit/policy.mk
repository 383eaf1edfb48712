# unit tests of src/policy
