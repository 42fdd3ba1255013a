"""Evaluate candidates on plain-language criteria and select the best of several candidates.

    readable = QualitativeCriteria("The code is readable.", LLM("gpt-6-luna"), num_samples=5, min_pass=3)
    simple = QuantitativeCriteria("How complex is the code? (0 = simple, 10 = complex)", LLM("gpt-6-luna"))
    strategy = Strategy(verify=readable, cost=simple)
    writer = LLM("anthropic/claude-sonnet-5-5")
    result = await strategy.run(writer, "Write a function that parses a CSV file.", reevaluate=5)
    result.winner, result.cost, result.reevaluated_cost

Each criterion asks its judge for one or more samples. Samples are votes and use the same retries, limits,
cache and cost accounting as a grader's votes. Candidates are never executed.
"""

from autorubric.support.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
