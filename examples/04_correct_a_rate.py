"""Researcher: estimate how many of 1,000 texts pass, although the judge makes mistakes."""

from autorubric.metrics import corrected_rate

# On 60 texts that people labelled, the judge found 27 of 30 passes and 21 of 30 failures.
truth = ["MET"] * 30 + ["UNMET"] * 30
judged = ["MET"] * 27 + ["UNMET"] * 3 + ["UNMET"] * 21 + ["MET"] * 9
# On 1,000 other texts it says that 600 pass.
rate = corrected_rate(["MET"] * 600 + ["UNMET"] * 400, truth, judged)

print("the judge passes 0.60")
print(f"corrected: {rate.value:.2f}, 95% interval {rate.low:.2f} to {rate.high:.2f}")
