# Everything this course does from the command line. `make help` lists it.
# Kept to what GNU make 3.81 and a plain POSIX shell understand, because macOS ships those.

SHELL := /bin/sh
.DEFAULT_GOAL := help
.PHONY: help lab setup update test check test-lowest test-newest .at-an-end test-browser test-book notebooks assignments new book elsewhere bench lint teach release autograde feedback personal inventory test-class clean .moved

VENV := .venv
PY := $(VENV)/bin/python
STATE := $(CURDIR)/$(VENV)/state

# Jupyter, IPython, Matplotlib and pip keep their files in the environment, never in the user's home.
export JUPYTER_CONFIG_DIR := $(STATE)/jupyter/config
export JUPYTER_DATA_DIR := $(STATE)/jupyter/data
export JUPYTER_RUNTIME_DIR := $(STATE)/jupyter/runtime
export JUPYTERLAB_SETTINGS_DIR := $(STATE)/jupyter/settings
export JUPYTERLAB_WORKSPACES_DIR := $(STATE)/jupyter/workspaces
export IPYTHONDIR := $(STATE)/ipython
export MPLCONFIGDIR := $(STATE)/matplotlib
export JUPYTER_PREFER_ENV_PATH := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_NO_CACHE_DIR := 1
export PIP_USER := 0
# Another project's modules, kernels and settings must not leak in.
unexport PYTHONPATH
unexport PYTHONHOME
unexport JUPYTER_PATH
unexport JUPYTER_CONFIG_PATH

# Threads that wait for each other spin only briefly: beside another busy program spinning makes training crawl.
export GOMP_SPINCOUNT := $(or $(GOMP_SPINCOUNT),100000)

# Downloaded corpora stay with the checkout too, where `make clean` leaves them.
export COURSE_CACHE := $(if $(COURSE_CACHE),$(COURSE_CACHE),$(CURDIR)/.cache)
# Kernels work in notebooks/, so a relative COURSE_DATA is made absolute here.
ifneq ($(strip $(COURSE_DATA)),)
override COURSE_DATA := $(or $(shell cd "$(COURSE_DATA)" 2>/dev/null && pwd),$(COURSE_DATA))
export COURSE_DATA
endif

# pip asks rustc, where there is one, for its version, and rustup then writes into the home.
NO_RUSTUP := RUSTUP_HOME="$(STATE)/rustup"
PIP := $(NO_RUSTUP) $(PY) -m pip
# No search for language servers either: it calls npm, which does the same. Kernels are spoken to in cipher.
LAB := --LanguageServerManager.autodetect=False --KernelManager.transport_encryption=auto
# JupyterLab on a folder of the checkout, $(1), with an address below /lab, $(2).
START_LAB = set --; \
	if [ "$$(id -u)" = 0 ]; then set -- "$$@" --allow-root; fi; \
	if [ "$$(uname -s)" = Linux ] && [ -z "$$DISPLAY$$WAYLAND_DISPLAY" ]; then set -- "$$@" --no-browser; fi; \
	cd "$(1)" && exec "$(CURDIR)/$(PY)" -m jupyterlab $(LAB) --ServerApp.root_dir="$(1)" \
		--LabApp.default_url="/lab$(2)" "$$@" $(ARGS)
# What JupyterLab shows: tests and teachers' tools add to it, which a learner sees nothing of.
SHOWN := notebooks/source/jupyter
# nbgrader would go on with its defaults, and grade uncontained, if its configuration could not be read.
NBGRADER := PATH="$(CURDIR)/$(VENV)/bin:$$PATH" TRAITLETS_APPLICATION_RAISE_CONFIG_FILE_ERROR=1 "$(CURDIR)/$(PY)" -m nbgrader
# The one assignment whose name begins so; without ASSIGNMENT all of them do.
FOR_ASSIGNMENT = @cd notebooks/assignments && set -- source/$(ASSIGNMENT)* && \
	{ [ -z "$(ASSIGNMENT)" ] || [ ! -d "source/$(ASSIGNMENT)" ] || set -- "source/$(ASSIGNMENT)"; } && \
	{ [ -d "$$1" ] && [ -z "$$2" ] || { echo "Say which: make $@ ASSIGNMENT=03" >&2; exit 1; }; } && \
	name=$$(basename "$$1") && $(1)
COPIES := my_course
LESSONS := $(sort $(wildcard notebooks/[0-9][0-9]_*.ipynb))
CORE := $(patsubst %,tests/test_%.py,config masks tokenizer position attention blocks transformer recording translator)
# More of the library, for `make test-lowest` and `make test-newest`: what leans on other packages most.
UNITS := $(CORE) $(patsubst %,tests/test_%.py,metrics preprocessing cost) \
	$(patsubst %,tests/%,alternatives checks compression data decoding families figures storage widgets)
# With END=lowest or newest, in an environment of its own, the versions at that end of the ranges; TORCH=2.13.0 picks one.
CONSTRAINTS := $(if $(END),$(VENV)/constraints.txt,constraints.txt)
AT_AN_END = $(MAKE) --no-print-directory VENV=build/$(1) END=$(1) .at-an-end
SOLUTIONS := $(sort $(wildcard notebooks/assignments/solution/*/*.ipynb))
NBVAL := --nbval-lax --nbval-current-env --nbval-cell-timeout 1800
# Files are tested side by side, each with one thread; the long ones come first. WORKERS=0 takes one after the other.
WORKERS := auto
SIDE_BY_SIDE := --maxprocesses 4 --no-loadscope-reorder --dist
# What has a target of its own.
APART := --ignore=tests/browser --ignore=tests/book
# Pages are opened one after another; PAGES=2 takes two at a time, but none beside a test that measures how soon one answers.
PAGES := 0

# The course's Python: PYTHON if given, else the first one that is new enough and can make environments.
CANDIDATES := $(if $(PYTHON),"$(PYTHON)",python3 python3.13 python3.12 python3.11 python)
define CREATE_VENV
$(PY) -c 'import pip, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	for candidate in $(CANDIDATES); do \
		if "$$candidate" -c 'import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; \
		then echo "Creating $(VENV) with $$("$$candidate" --version)."; \
			exec env $(NO_RUSTUP) "$$candidate" -m venv --clear $(VENV); fi; \
	done; \
	echo "No Python 3.11 or newer with venv found (tried:" $(CANDIDATES)")." >&2; \
	echo "Install one, or name it: make lab PYTHON=/path/to/python3.11" >&2; \
	echo "(On Debian and Ubuntu, venv is a package of its own: python3-venv.)" >&2; \
	exit 1; }
endef

help: ## Show this list
	@echo "make TARGET [ARGS=\"...\"]"
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' Makefile

lab: setup ## Open your copies of the lessons in JupyterLab; ARGS="--no-browser" goes to JupyterLab
	@$(call START_LAB,$(CURDIR),$(if $(LESSONS),/tree/$(COPIES)/$(notdir $(firstword $(LESSONS)))))

setup: $(VENV)/.lab-ready ## The same without JupyterLab, as for VS Code: set up, and bring your copies
	@$(if $(LESSONS),$(PY) -m notebooks.copies $(COPIES))

update: ## Get a new edition of the course; what you have written in your copies stays
	@[ -e .git ] || { echo "This folder is no clone of the repository, so git cannot bring a new edition." >&2; \
		echo "Download and unpack the new one, move $(COPIES) into it, and run make lab there." >&2; exit 1; }
	git pull --ff-only
	@$(MAKE) --no-print-directory setup

test: $(VENV)/.test-ready ## Lint, unit tests, every notebook; ARGS="-k attention" goes to pytest
	$(PY) -m ruff check
	OMP_NUM_THREADS=1 $(PY) -m pytest $(LESSONS) $(SOLUTIONS) tests $(NBVAL) -n $(WORKERS) $(SIDE_BY_SIDE) loadfile $(APART) $(ARGS)

check: $(VENV)/.test-ready ## In a minute: lint, the tests of the model, one lesson
	$(PY) -m ruff check
	$(PY) -m pytest $(CORE) $(firstword $(LESSONS)) $(NBVAL) $(ARGS)

test-lowest: ## The library's tests with the oldest versions that pyproject.toml admits, in build/lowest
	@$(call AT_AN_END,lowest)

test-newest: ## The same with the newest there are today, in build/newest, made anew
	rm -rf build/newest
	@$(call AT_AN_END,newest)

.at-an-end: $(VENV)/.test-ready
	$(PY) -m pip list
	$(PY) -m pytest $(UNITS) $(firstword $(LESSONS)) $(NBVAL) $(ARGS)

test-browser: $(VENV)/.browser-ready ## Every lesson and widget in JupyterLab, operated in a real browser
	$(PY) -m pytest tests/browser -n $(PAGES) $(SIDE_BY_SIDE) loadgroup $(ARGS)

test-book: $(VENV)/.browser-ready $(VENV)/.book-ready ## The pages of the book: links, figures, nothing from elsewhere
	$(PY) -m pytest tests/book -n $(WORKERS) $(SIDE_BY_SIDE) loadfile $(ARGS)

notebooks: $(VENV)/.test-ready ## Generate and execute what changed; LESSON=08 picks one, FORCE=1 executes anyway
	$(PY) -m notebooks.source.build_lessons $(if $(FORCE),--force) $(LESSON)
	$(PY) -m notebooks.source.course_map
	$(PY) -m notebooks.source.architecture
	$(PY) -m notebooks.source.terms
	$(PY) -m notebooks.source.readme

assignments: $(VENV)/.test-ready ## Generate the assignments from their texts; ASSIGNMENT=03 picks one
	$(PY) -m notebooks.source.build_assignments $(ASSIGNMENT)
	$(PY) -m notebooks.source.build_inventory

new: $(VENV)/.test-ready ## The first files of a new KIND=lesson NAME=19_topic; other kinds: exercise, widget, language
	$(PY) -m notebooks.source.skeleton $(KIND) $(NAME)

book: $(VENV)/.book-ready ## The course as web pages, in build/book; runs no lesson
	$(PY) -m notebooks.source.book build/book-source
	$(PY) -m sphinx -q -W --keep-going -d build/book-doctrees build/book-source build/book $(ARGS)
	@echo "build/book/index.html"

elsewhere: $(VENV)/.test-ready ## Lessons that install the course where it is not, as on Colab; ADDRESS=https://github.com/OWNER/REPOSITORY
	@[ -n "$(ADDRESS)" ] || \
		{ echo "Say where the repository is: make elsewhere ADDRESS=https://github.com/OWNER/REPOSITORY" >&2; exit 1; }
	$(PY) -m notebooks.source.elsewhere $(ADDRESS) build/elsewhere

teach: $(VENV)/.teach-ready ## For teachers: JupyterLab on the assignments, with nbgrader's menus
	@JUPYTER_CONFIG_PATH="$(CURDIR)/$(SHOWN)/teacher"; export JUPYTER_CONFIG_PATH; \
		$(call START_LAB,$(CURDIR)/notebooks/assignments,)

release: $(VENV)/.teach-ready ## For teachers: put ASSIGNMENT=03 into the gradebook and make what students get
	$(call FOR_ASSIGNMENT,$(NBGRADER) generate_assignment --force "$$name")

autograde: $(VENV)/.teach-ready ## For teachers: grade what is new in submitted/ of ASSIGNMENT=03; ARGS="--again" grades all again
	$(call FOR_ASSIGNMENT,"$(CURDIR)/$(PY)" -m course_lib.grading $(ARGS) "$$name")

feedback: $(VENV)/.teach-ready ## For teachers: a page for each student of ASSIGNMENT=03, grades.csv, the leaderboard of 19
	$(call FOR_ASSIGNMENT,$(NBGRADER) generate_feedback --force "$$name" && $(NBGRADER) export \
		&& "$(CURDIR)/$(PY)" -m course_lib.grading.leaderboard "$$name")

personal: $(VENV)/.teach-ready ## For teachers: a notebook of ASSIGNMENT=05 for each student; ARGS="--students class.txt"
	$(call FOR_ASSIGNMENT,"$(CURDIR)/$(PY)" -m course_lib.grading personal "$$name" $(ARGS))

inventory: $(VENV)/.teach-ready ## For teachers: what the course moved, as a page, from both sets of the twelve questions
	@cd notebooks/assignments && "$(CURDIR)/$(PY)" -m course_lib.grading inventory $(ARGS)

test-class: $(VENV)/.test-ready ## Grade a class of thirty for every assignment
	$(PY) -m pytest tests/grading --all-assignments -rP $(ARGS)

bench: $(VENV)/.bench-ready ## How fast the library is, beside what else one would use; ARGS="training" picks a part
	$(PY) -m tests.bench $(ARGS)

lint: $(VENV)/.test-ready ## Check the code style; ARGS="--fix" repairs what it can
	$(PY) -m ruff check $(ARGS)

clean: ## Remove the environment, caches and settings; notebooks and corpora stay
	rm -rf $(VENV) build *.egg-info .pytest_cache .ruff_cache
	find . -name __pycache__ -prune -exec rm -rf {} +
	find . -name .ipynb_checkpoints -prune -exec rm -rf {} +

# Each stamp holds the folder it was made for: an environment in a moved or copied checkout is installed again.
ifneq ($(shell cat $(VENV)/.lab-ready 2>/dev/null),$(CURDIR))
$(VENV)/.lab-ready: .moved
endif
ifneq ($(shell cat $(VENV)/.test-ready 2>/dev/null),$(CURDIR))
$(VENV)/.test-ready: .moved
endif
ifneq ($(shell cat $(VENV)/.teach-ready 2>/dev/null),$(CURDIR))
$(VENV)/.teach-ready: .moved
endif
ifneq ($(shell cat $(VENV)/.bench-ready 2>/dev/null),$(CURDIR))
$(VENV)/.bench-ready: .moved
endif
ifneq ($(shell cat $(VENV)/.book-ready 2>/dev/null),$(CURDIR))
$(VENV)/.book-ready: .moved
endif
ifneq ($(shell cat $(VENV)/.browser-ready 2>/dev/null),$(CURDIR))
$(VENV)/.browser-ready: .moved
endif
.moved:

$(VENV)/.lab-ready: pyproject.toml constraints.txt $(wildcard $(SHOWN)/learner/*.json $(SHOWN)/learner/*/*.json)
	@$(CREATE_VENV)
	$(if $(END),@$(PY) -m tests.versions $(END) $(TORCH) > $(CONSTRAINTS))
	$(PIP) install -c $(CONSTRAINTS) -e ".[course]"
	@# The first plot would build Matplotlib's font cache, and fontconfig one in the home: do it here and now.
	@XDG_CACHE_HOME="$(STATE)/cache" $(PY) -c "import matplotlib.font_manager"
	@# JupyterLab must not ask the network for news, nor show what `make test` and `make teach` install.
	@mkdir -p $(VENV)/etc/jupyter
	@cp -R $(SHOWN)/learner/. $(VENV)/etc/jupyter/
	@echo "$(CURDIR)" > $@

$(VENV)/.test-ready: $(VENV)/.lab-ready
	$(PIP) install --quiet -c $(CONSTRAINTS) -e ".[test,instructor]"
	@echo "$(CURDIR)" > $@

$(VENV)/.teach-ready: $(VENV)/.lab-ready
	$(PIP) install --quiet -c $(CONSTRAINTS) -e ".[instructor]"
	@echo "$(CURDIR)" > $@

$(VENV)/.bench-ready: $(VENV)/.lab-ready
	$(PIP) install --quiet -c $(CONSTRAINTS) -e ".[bench]"
	@echo "$(CURDIR)" > $@

$(VENV)/.book-ready: $(VENV)/.lab-ready
	$(PIP) install --quiet -c $(CONSTRAINTS) -e ".[book]"
	@echo "$(CURDIR)" > $@

$(VENV)/.browser-ready: $(VENV)/.test-ready
	$(PIP) install --quiet -c $(CONSTRAINTS) -e ".[browser]"
	@echo "$(CURDIR)" > $@
