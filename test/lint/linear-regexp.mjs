import { RegExpParser } from '@eslint-community/regexpp';
import { getFirstConsumedChar } from 'regexp-ast-analysis';
import { analyse } from 'scslre';

/**
 * A rule for the linter: every regular expression of the sources takes time that grows no faster than its input. What
 * comes from outside may be as long as a header or a body may be, and backtracking over it stops a node. Three things
 * are refused: repetition that can share out its text in several ways (`\s*"?\s*$`, `(a+)+`), which scslre finds where
 * it is one character again and again; a repetition without an end inside another one, or of alternatives that can
 * begin alike, whatever they repeat; and expressions that are put together while the program runs, which nobody can
 * look at beforehand.
 */
const linear = {
  create(context) {
    const report = (node, message) => context.report({ node, message });
    return {
      Literal(node) {
        if (node.regex === undefined || node.regex === null) return;
        const problem = problemOf(node.regex.pattern, node.regex.flags);
        if (problem !== null) report(node, problem);
      },
      NewExpression(node) {
        if (node.callee.type === 'Identifier' && node.callee.name === 'RegExp') report(node, BUILT);
      },
      CallExpression(node) {
        if (node.callee.type === 'Identifier' && node.callee.name === 'RegExp') report(node, BUILT);
        const { callee } = node;
        const method = callee.type === 'MemberExpression' && !callee.computed ? callee.property.name : '';
        // A text in place of an expression is made into one.
        if (
          TAKES_EXPRESSION.has(method) &&
          TEXTS.has(node.arguments[0]?.type) &&
          typeof node.arguments[0].value !== 'object'
        ) {
          if (node.arguments[0].regex === undefined) report(node, BUILT);
        }
      },
    };
  },
};

const TAKES_EXPRESSION = new Set(['match', 'matchAll', 'search']);
const TEXTS = new Set(['Literal', 'TemplateLiteral', 'BinaryExpression']);
const BUILT =
  'Write the expression as a literal, which can be looked at beforehand. One that a caller gives goes through handlers/streams/expression.ts.';

/** Why an expression may take more time than its input has characters; null when it can't. */
export function problemOf(pattern, flags) {
  const parser = new RegExpParser();
  const parsed = parser.parsePattern(pattern, undefined, undefined, {
    unicode: flags.includes('u'),
    unicodeSets: flags.includes('v'),
  });
  const parsedFlags = parser.parseFlags(flags);
  const nested = nestedIn(parsed, false, parsedFlags);
  if (nested !== null)
    return `${nested.raw} can repeat the same text in several ways: write a loop, or bound the repetition.`;
  const [found] = analyse({ pattern: parsed, flags: parsedFlags }).reports;
  if (found === undefined) return null;
  const quantifier =
    found.type === 'Trade'
      ? `${found.startQuant.raw} and ${found.endQuant.raw} can share the same text in many ways`
      : `${found.quant.raw} is tried again from each place of the same text`;
  return `The time of this expression grows faster than its input: ${quantifier}. Write a loop, anchor it, or bound the repetition.`;
}

/** A quantifier without an end below another one, or of alternatives that can begin with the same character. */
function nestedIn(node, isRepeated, flags) {
  switch (node.type) {
    case 'Quantifier': {
      const isEndless = node.max === Infinity;
      if (isEndless && (isRepeated || beginAlike(node.element.alternatives ?? [], flags))) return node;
      return nestedIn(node.element, isRepeated || isEndless, flags);
    }
    case 'Pattern':
    case 'Group':
    case 'CapturingGroup':
    case 'Assertion':
      return first(node.alternatives ?? [], (each) => nestedIn(each, isRepeated, flags));
    case 'Alternative':
      return first(node.elements, (each) => nestedIn(each, isRepeated, flags));
    default:
      return null;
  }
}

function beginAlike(alternatives, flags) {
  const beginnings = alternatives.map((each) => getFirstConsumedChar(each, 'ltr', flags).char);
  return beginnings.some((each, i) => beginnings.slice(i + 1).some((other) => !each.isDisjointWith(other)));
}

function first(nodes, find) {
  for (const node of nodes) {
    const found = find(node);
    if (found !== null) return found;
  }
  return null;
}

export default { meta: { name: 'hostile-input' }, rules: { 'linear-regexp': linear } };
