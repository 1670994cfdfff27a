r"""The commands of TeX that a formula may use in a notebook of a stranger's.

None of them makes a link, sets a style, a class or an attribute, defines another command, or loads anything: not
``\href``, ``\class``, ``\def`` or ``\require``, and not whatever a later MathJax may bring.
"""

from __future__ import annotations

from typing import Final

__all__ = ["COMMANDS", "ENVIRONMENTS"]

LETTERS: Final = """
alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa varkappa lambda mu nu xi omicron pi varpi
rho varrho sigma varsigma tau upsilon phi varphi chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi
Omega digamma aleph beth gimel daleth hbar hslash ell wp Re Im imath jmath partial nabla infty emptyset varnothing
forall exists nexists neg lnot angle measuredangle sphericalangle triangle square Box diamond Diamond bigstar clubsuit
diamondsuit heartsuit spadesuit flat natural sharp prime backprime complement eth mho
"""
OPERATORS: Final = """
sum prod coprod int iint iiint iiiint oint bigcup bigcap bigvee bigwedge bigoplus bigotimes bigodot biguplus bigsqcup
pm mp times div cdot ast star circ bullet cap cup uplus sqcap sqcup vee wedge land lor setminus smallsetminus wr amalg
oplus ominus otimes oslash odot bigcirc dagger ddagger ltimes rtimes dotplus boxplus boxtimes
arccos arcsin arctan arg cos cosh cot coth csc deg det dim exp gcd hom inf injlim ker lg lim liminf limsup ln log max
min projlim Pr sec sin sinh sup tan tanh varinjlim varliminf varlimsup varprojlim bmod pmod mod pod operatorname
"""
RELATIONS: Final = """
le leq leqslant ge geq geqslant ne neq equiv sim simeq approx approxeq cong propto varpropto asymp doteq prec preceq
succ succeq ll lll gg ggg subset subseteq subsetneq supset supseteq supsetneq sqsubset sqsubseteq sqsupset sqsupseteq
nsubseteq nsupseteq in ni notin owns mid nmid parallel nparallel perp vdash dashv models vDash bowtie smile frown not
lesssim gtrsim lessgtr gtrless nless ngtr nleq ngeq nsim ncong triangleq coloneqq therefore because
"""
ARROWS: Final = """
to gets leftarrow rightarrow leftrightarrow Leftarrow Rightarrow Leftrightarrow mapsto longmapsto longleftarrow
longrightarrow longleftrightarrow Longleftarrow Longrightarrow Longleftrightarrow iff implies impliedby uparrow
downarrow updownarrow Uparrow Downarrow Updownarrow nearrow searrow swarrow nwarrow hookleftarrow hookrightarrow
leftharpoonup leftharpoondown rightharpoonup rightharpoondown rightleftharpoons leftrightharpoons leadsto
twoheadrightarrow rightsquigarrow xrightarrow xleftarrow nrightarrow nleftarrow
"""
SHAPES: Final = """
frac dfrac tfrac cfrac binom dbinom tbinom sqrt root over atop choose stackrel overset underset sideset substack
hat widehat check widecheck tilde widetilde acute grave dot ddot dddot breve bar vec mathring overline underline
overbrace underbrace overleftarrow overrightarrow overleftrightarrow boxed cancel bcancel xcancel
left right middle big Big bigg Bigg bigl bigr bigm Bigl Bigr Bigm biggl biggr biggm Biggl Biggr Biggm
langle rangle lceil rceil lfloor rfloor lbrace rbrace lbrack rbrack lvert rvert lVert rVert vert Vert backslash
lgroup rgroup ulcorner urcorner llcorner lrcorner limits nolimits displaylimits
"""
LAYOUT: Final = """
quad qquad enspace thinspace medspace thickspace negthinspace nobreakspace hline hfill newline cr displaystyle
textstyle scriptstyle scriptscriptstyle tag notag nonumber label ref eqref intertext phantom hphantom vphantom smash
dots ldots cdots vdots ddots dotsb dotsc dotsi dotsm dotso colon
"""
TYPE: Final = """
mathrm mathbf mathit mathsf mathtt mathcal mathbb mathfrak mathscr mathnormal boldsymbol bm pmb bf rm it sf tt cal
text textrm textbf textit textsf texttt mbox emph mathop mathbin mathrel mathord mathopen mathclose mathpunct
mathinner color textcolor tiny small normalsize large Large
"""
COMMANDS: Final = frozenset(" ".join((LETTERS, OPERATORS, RELATIONS, ARROWS, SHAPES, LAYOUT, TYPE)).split())

AROUND: Final = """
align align* aligned alignat alignat* alignedat array Bmatrix bmatrix cases dcases rcases displaymath eqnarray eqnarray*
equation equation* gather gather* gathered math matrix multline multline* pmatrix smallmatrix split subarray vmatrix
Vmatrix
"""
ENVIRONMENTS: Final = frozenset(AROUND.split())
