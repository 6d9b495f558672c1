"""`tessella reproduce`: the experiments of the paper, one command each."""
