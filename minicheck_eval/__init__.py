"""Tell, for every case, cheaply and offline, whether an answer is supported by the evidence it was given."""
