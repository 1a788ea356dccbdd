"""The palette of all figures, and the frame of the pages that the explorer shows; figures lie with their subject."""
