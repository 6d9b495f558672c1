"""The first lines of our docstrings, as the documentation site sets them."""

import importlib
import inspect
import pkgutil

import pytest
from matplotlib.mathtext import MathTextParser

import tessella
from extensions.formulas import Split, split
from extensions.latex import NotAFormulaError, latex

FORMULAS = {
    "log p(x) = log base(f(x)) + log|det df/dx|": (
        r"\log p(x) = \log \mathrm{base}(f(x)) + \log\left|\det \frac{\partial f}{\partial x}\right|"
    ),
    "log p(x) = log p(k) + log p_comp(f_k^-1(x) | k) + log|det df_k^-1/dx|,  k = the cell that holds x": (
        r"\begin{aligned} & \log p(x) = \log p(k) + \log p_{\mathrm{comp}}(f_k^{-1}(x) \mid k)"
        r" + \log\left|\det \frac{\partial f_k^{-1}}{\partial x}\right|,"
        r" \\ & k =\text{ the cell that holds }x \end{aligned}"
    ),
    "log P(c) >= E_q log 1/S sum_s p(x_s) / q(x_s | c)": (
        r"\log P(c) \geq \mathbb{E}_q \log \frac{1}{S} \sum_s p(x_s) / q(x_s \mid c)"
    ),
    "log p(x) = log p_comp(y) + sum_j log p(k_j | y) + sum_j log|dy_j/dx_j|,  y_j = f_(k_j)^-1(x_j)": (
        r"\begin{aligned} & \log p(x) = \log p_{\mathrm{comp}}(y) + \sum_j \log p(k_j \mid y)"
        r" + \sum_j \log\left|\frac{\mathrm{d} y_j}{\mathrm{d} x_j}\right|, \\ & y_j = f_{k_j}^{-1}(x_j) \end{aligned}"
    ),
    "V_k = { x : |x - x_k| < |x - x_i| for all i }": (
        r"V_k = \{ x : \left|x - x_k\right| < \left|x - x_i\right|\text{ for all }i \}"
    ),
    "P(c) = prod_g sum_m w_m(c_<g) prod_(j in g) P_mj(c_j | c_<g), for G groups g of variables": (
        r"P(c) = \prod_g \sum_m w_m(c_{<g}) \prod_{j \in g} P_{mj}(c_j \mid c_{<g}),"
        r"\text{ for }G\text{ groups }g\text{ of variables}"
    ),
    "P(c) = prod_j P(c_j | c_parent(j)),  P(b | a) = (n_ab + s P(b)) / (n_a + s)": (
        r"\begin{aligned} & P(c) = \prod_j P(c_j \mid c_{\mathrm{parent}(j)}),"
        r" \\ & P(b \mid a) = (n_{ab} + s P(b)) / (n_a + s) \end{aligned}"
    ),
    "p(x) = sum_m w_m prod_j sum_k P_mj(k) N(x_j; c_jk, diag s_jk^2)": (
        r"p(x) = \sum_m w_m \prod_j \sum_k P_{mj}(k) \mathcal{N}(x_j; c_{jk}, \operatorname{diag} s_{jk}^2)"
    ),
    "y = (x + shift) exp(log_scale), elementwise; ladj = sum log_scale": (
        r"y = (x + \mathrm{shift}) \exp(\mathrm{log\_scale}),\ \mathrm{elementwise};"
        r"\ \mathrm{ladj} = \sum \mathrm{log\_scale}"
    ),
    "y_keep = x_keep,  y_move = f(x_move; c),  c = net(x_keep, context), f increasing;  ladj = sum log f'": (
        r"\begin{aligned} & y_{\mathrm{keep}} = x_{\mathrm{keep}}, \\ & y_{\mathrm{move}} = f(x_{\mathrm{move}}; c),"
        r" \\ & c = \mathrm{net}(x_{\mathrm{keep}}, \mathrm{context}),\ f\text{ increasing};"
        r" \\ & \mathrm{ladj} = \sum \log f' \end{aligned}"
    ),
    "R_k = { x in R^K : x_k > x_i for all i }:  x_k = u_k,  x_i = x_k - softplus(x_k - u_i)": (
        r"\begin{aligned} & R_k = \{ x \in \mathbb{R}^K : x_k > x_i\text{ for all }i \} \\ & x_k = u_k,"
        r" \\ & x_i = x_k - \operatorname{softplus}(x_k - u_i) \end{aligned}"
    ),
    "x = place(u, codes), u ~ noise(. | context(codes))": (
        r"x = \mathrm{place}(u, \mathrm{codes}),\ u \sim \mathrm{noise}(\cdot \mid \mathrm{context}(\mathrm{codes}))"
    ),
    "f = f_n o ... o f_1, log-determinants added": (r"f = f_n \circ \ldots \circ f_1,\text{ log-determinants added}"),
    "h(y) = max(0, max_i n_i . y)": r"h(y) = \max(0, \max_i n_i \cdot y)",
    "log(e^v - 1) = v + log(1 - e^-v)": r"\log(e^v - 1) = v + \log(1 - e^{-v})",
    "code k <-> categories[k]": r"\mathrm{code}\, k \leftrightarrow \mathrm{categories}[k]",
}

LINES = {
    "d_t = min(d, (1 + t) / (10 + t)): short memory at first.": Split(
        latex=r"d_t = \min(d, (1 + t) / (10 + t))", prose="Short memory at first."
    ),
    "int P = 1 over rows of codes, counts and real numbers, as `sum_to_one_audit`.": Split(
        latex=r"\int P = 1", prose="over rows of codes, counts and real numbers, as `sum_to_one_audit`."
    ),
    "lower <= log P(c) <= upper on rows that the model made itself, x known; and upper - lower is small.": Split(
        latex=r"\mathrm{lower} \leq \log P(c) \leq \mathrm{upper}",
        prose="on rows that the model made itself, x known; and upper - lower is small.",
    ),
    "u = v / (1 - |v|), v uniform in a token's unit ball.": Split(
        latex=r"u = v / (1 - \left|v\right|)", prose="v uniform in a token's unit ball."
    ),
    "y = f(x) and log |det df/dx|.": Split(
        latex=r"y = f(x)\text{ and }\log \left|\det \frac{\partial f}{\partial x}\right|"
    ),
    "log p(k): (K,), or (*batch, K) given a context.": Split(
        latex=r"\log p(k)", prose="(K,), or (*batch, K) given a context."
    ),
    # No certain translation: shown as it stands.
    "log p(x) = flow().log_prob(flatten x), for a zuko flow over N * D features.": Split(
        code="log p(x) = flow().log_prob(flatten x)", prose="for a zuko flow over N * D features."
    ),
    "(*batch, N, inputs) -> (*batch, N, outputs).": Split(code="(*batch, N, inputs) -> (*batch, N, outputs)"),
}

PROSE = [
    "One map, both ways: y = f(x), x = f^-1(y), each with the log-absolute-determinant of the call just made.",
    "Codes (B, N) -> points (B, N, D) with quantize(x) == codes, and log q(x | codes) (B); reparameterised.",
    "train, validation and test partition the rows; codes[i, n] < schema.counts[n].",
    "log P(codes) in nats, exact: (B, N) -> (B). It needs no `samples`; bounds do.",
    "x and log dx/dy.",
    "tessella: likelihood models that join discrete and continuous data.",
    "Set data-dependent parameters from a batch, if there are any.",
]


@pytest.mark.parametrize("formula", FORMULAS)
def test_a_formula_becomes_latex(formula: str):
    assert latex(formula) == FORMULAS[formula]


@pytest.mark.parametrize("line", LINES)
def test_a_first_line_is_a_formula_and_prose(line: str):
    assert split(line) == LINES[line]


@pytest.mark.parametrize("line", PROSE)
def test_prose_stays_prose(line: str):
    assert split(line) == Split(prose=line)


@pytest.mark.parametrize("formula", ["f(x = 1", "|x - y = 1", "x == y", "a[b).c", "rows[n].name = k"])
def test_what_is_not_certain_is_refused(formula: str):
    with pytest.raises(NotAFormulaError):
        latex(formula)


def first_lines() -> set[str]:
    """Of everything that the packages export, and of its methods."""
    found = set()
    for module in pkgutil.iter_modules(tessella.__path__):
        package = importlib.import_module(f"tessella.{module.name}")
        exported = [getattr(package, name) for name in getattr(package, "__all__", [])]
        classes = [thing for thing in exported if inspect.isclass(thing)]
        members = [method for thing in classes for method in vars(thing).values() if inspect.isfunction(method)]
        found |= {inspect.getdoc(thing).splitlines()[0] for thing in exported + members if inspect.getdoc(thing)}
    return found


def test_another_parser_understands_every_formula():
    """matplotlib's, row by row, as it knows no environments."""
    found = [parts.latex for line in first_lines() if (parts := split(line)).latex]
    assert len(found) > 40
    for formula in found:
        body = formula.removeprefix(r"\begin{aligned}").removesuffix(r"\end{aligned}")
        for row in body.split(r"\\"):
            MathTextParser("path").parse(f"${row.strip(' &')}$")
