"""How an answer is judged: apart, on copies, beside a reference, with a diagnosis."""
