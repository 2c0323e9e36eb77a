"""Files that released versions wrote, kept as they are: later versions read them, or refuse them in a sentence."""
