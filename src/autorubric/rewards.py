"""Reward functions based on rubrics, for training with TRL or verifiers."""

from autorubric.integrations.rewards import as_async_reward, as_reward, as_verifiers_reward

__all__ = ["as_async_reward", "as_reward", "as_verifiers_reward"]
