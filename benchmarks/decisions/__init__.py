"""Requests, tokens and cost per verdict of decision models and of text models."""
