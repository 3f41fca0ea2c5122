"""
Precomputed kernels: strings
============================

Sequences have no columns. What tells them apart is which short words they share: the spectrum kernel of length k counts common words of k
letters. Nobody knows the right k, so all of them go in as matrices, and the weights choose.
"""

# %%
# Made sequences with a hidden word
# ---------------------------------
# Half of them contain a word of five letters with one letter left open, somewhere.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import cross_val_score

from mtmkl import KernelStack, MKLClassifier

rng = np.random.default_rng(2)
letters = np.array(list("ACGT"))


def sequence(has_word):
    """Sixty letters, with TATA?A or not."""
    text = rng.choice(letters, 60)
    if has_word:
        at = rng.integers(0, 54)
        text[at : at + 6] = [*"TATA", rng.choice(letters), "A"]
    return "".join(text)


has_word = rng.random(240) < 0.5
sequences = [sequence(yes) for yes in has_word]
print(sequences[0], has_word[0])

# %%
# A matrix for each length
# ------------------------


def spectrum(sequences, k):
    """Which words of k letters each sequence has, as a matrix of inner products, scaled to a diagonal of ones."""
    words = [{text[at : at + k] for at in range(len(text) - k + 1)} for text in sequences]
    known = {word: number for number, word in enumerate(sorted(set().union(*words)))}
    has = np.zeros((len(sequences), len(known)))
    for row, found in enumerate(words):
        has[row, [known[word] for word in found]] = 1
    product = has @ has.T
    scale = np.sqrt(np.diag(product))
    return product / scale[:, None] / scale


lengths = [2, 3, 4, 5, 6, 8]
stack = np.stack([spectrum(sequences, k) for k in lengths])

# %%
# ``KernelStack`` is a stack of matrices that knows how to be split, so everything of scikit-learn works. One length at a time, then all with
# learned weights:

alone = [
    cross_val_score(
        MKLClassifier("precomputed", C=10), KernelStack(matrix[None]), has_word, cv=5
    ).mean()
    for matrix in stack
]
learned = cross_val_score(
    MKLClassifier("precomputed", C=10, p=1), KernelStack(stack), has_word, cv=5
).mean()
model = MKLClassifier("precomputed", C=10, p=1).fit(stack, has_word)

# %%

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3), layout="constrained")
names = [str(k) for k in lengths]
left.bar(names, alone, color="tab:gray")
left.axhline(learned, color="tab:blue")
left.text(
    len(names) - 0.5, learned, "all, learned weights", ha="right", va="bottom", color="tab:blue"
)
left.set(title="accuracy in cross-validation", xlabel="length of words", ylim=(0.4, 1))
right.bar(names, model.kernel_weights_[0], color="tab:blue")
right.set(title="weights", xlabel="length of words")
print(
    {k: round(float(score), 2) for k, score in zip(lengths, alone, strict=True)},
    f"all: {learned:.2f}",
)

# %%
# New sequences are predicted from the matrix of their values with the training sequences, one for each kernel: a stack (M, new, training), with
# k(x, x) of the new ones where kernels are normalised. The program takes the same from NPY files (``mtmkl fit --gram``).
