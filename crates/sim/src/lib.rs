//! Predict: a discrete-event simulator that drives the strategies on a machine description.
