"""Adapters for agent frameworks: each tool call of the framework is checked, signed and recorded in a session.

One module for each framework, imported only with it: `openai_agents`, `langgraph`, `pydantic_ai`, `opentelemetry`.
"""
