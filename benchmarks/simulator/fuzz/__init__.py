"""Random programs on which the simulator must agree with a model of each."""
