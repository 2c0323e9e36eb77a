"""Private linear models with scikit-learn's interface.

Import them from `shuffledp.learn`; they need scikit-learn: pip install 'shuffledp[learn]'. A fitted one is kept as a
`LinearModel`, which needs nothing.
"""
