# Everything starts with scripts/setup.sh, which says what is missing before it fetches anything.
# All of it can be run again at any time. `make` alone lists what there is.

notebook := notebooks/00-try-to-break-out.ipynb
bin := .venv/bin
checked := pybox_kernel tests benchmarks scripts
# Processes that run tests side by side: most of the time a test waits for the engine.
workers := 3
# A test run starts hundreds of Python processes: none compiles what another has compiled (set to nothing is not set).
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help setup demo lab test test-vm bench soak clean

help:
	@sed -n 's/^\([a-z-]*\):.*## /make \1	/p' Makefile

setup: ## sets everything up: Python packages, container engine, box image, kernel
	@sh scripts/setup.sh

demo: setup ## six cells that try to break out, each with its receipt, in this terminal
	@$(bin)/python scripts/demo.py $(notebook)

lab: setup ## the same notebook in JupyterLab; nothing of the user's own Lab settings is changed
	@JUPYTERLAB_WORKSPACES_DIR=$(CURDIR)/.venv/lab-workspaces \
		$(bin)/jupyter lab $(if $(filter 0,$(shell id -u)),--allow-root) \
		--LabApp.default_url=/lab/tree/$(notdir $(notebook)) $(dir $(notebook))

test: ## sets up, then checks the code and runs every test, on the real engine
	@sh scripts/setup.sh test
	$(bin)/ruff check $(checked)
	$(bin)/ruff format --check $(checked)
	$(bin)/mypy
	$(bin)/lint-imports
	$(bin)/python -m pytest -n $(workers) --no-loadscope-reorder -m "not soak and not alone"
	$(bin)/python -m pytest -m "alone and not soak" $(sort $(dir $(shell grep -rlw pytest.mark.alone tests)))

test-vm: ## the tests of the private virtual machine alone
	@sh scripts/setup.sh test
	$(bin)/python -m pytest -m "soak or not soak" tests/machines

bench: ## times and memory, each beside what it is compared with; ten minutes, and nothing else should run
	@sh scripts/setup.sh test
	$(bin)/python -m benchmarks

soak: ## many runs in a row and at once: nothing may pile up; and each attack in the other kind of box
	@sh scripts/setup.sh test
	$(bin)/python -m pytest -m soak
	PYBOX_TEST_BOXES="made now" $(bin)/python -m pytest -n $(workers) tests/escapes

clean: ## removes .venv and what the tools keep; box images and the engine stay
	rm -rf .venv dist build .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
