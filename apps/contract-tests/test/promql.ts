import type { SyntaxNode } from '@lezer/common';
import { parser } from '@prometheus-io/lezer-promql';

/** The metrics and labels that a PromQL expression requires. */
export interface ExpressionNeeds {
  /** The places where the expression cannot be parsed. */
  syntaxErrors: string[];
  /** Metrics with the labels that their samples must have: those in a matcher, and those used for grouping. */
  metrics: { name: string; labels: string[] }[];
  /** The labels that remain in the result; undefined when nothing is aggregated away. */
  resultLabels: string[] | undefined;
}

export function readExpression(text: string): ExpressionNeeds {
  const top = parser.parse(text).topNode;
  const sliceOf = (node: SyntaxNode): string => text.slice(node.from, node.to);
  const syntaxErrors = nodesOf(top, (node) => node.type.isError).map(
    (node) => `cannot be read at "${text.slice(node.from, node.from + 20)}"`,
  );
  const selected = nodesOf(top, ({ name }) => name === 'VectorSelector').map((selector) => ({
    name: selector.getChild('Identifier') === null ? '' : sliceOf(selector.getChild('Identifier')!),
    labels: labelsIn(selector).map(sliceOf),
  }));
  const groupings = nodesOf(top, ({ name }) => name === 'GroupingLabels').map((grouping) => ({
    labels: labelsIn(grouping).map(sliceOf),
    metrics: nodesOf(expressionAround(grouping), ({ name }) => name === 'VectorSelector').flatMap((selector) => {
      const identifier = selector.getChild('Identifier');
      return identifier === null ? [] : [sliceOf(identifier)];
    }),
  }));
  const grouped = groupings.flatMap(({ labels, metrics }) => metrics.map((name) => ({ name, labels })));
  const aggregates = nodesOf(top, ({ name }) => name === 'AggregateExpr').length > 0;
  return {
    syntaxErrors,
    metrics: [...selected, ...grouped],
    resultLabels: aggregates ? groupings.flatMap(({ labels }) => labels) : undefined,
  };
}

function labelsIn(node: SyntaxNode): SyntaxNode[] {
  return nodesOf(node, ({ name }) => name === 'LabelName');
}

/** What a grouping applies to: everything that is aggregated, or both sides of an operator. */
function expressionAround(grouping: SyntaxNode): SyntaxNode {
  let node = grouping;
  while (node.parent !== null && node.name !== 'AggregateExpr' && node.name !== 'BinaryExpr') node = node.parent;
  return node;
}

function nodesOf(node: SyntaxNode, wanted: (node: SyntaxNode) => boolean): SyntaxNode[] {
  const found: SyntaxNode[] = [];
  node.cursor().iterate((each) => {
    if (wanted(each.node)) found.push(each.node);
  });
  return found;
}
