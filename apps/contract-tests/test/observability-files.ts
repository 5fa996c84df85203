import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parse } from 'yaml';
import { repositoryRoot } from '@scheduling/stack';

/** An expression of an alert or a panel, with the labels that the texts about its result mention. */
export interface UsedExpression {
  where: string;
  expression: string;
  mentionedLabels: string[];
}

interface AlertRule {
  alert: string;
  expr: string;
  annotations: Record<string, string>;
}

interface Dashboard {
  panels: { title: string; targets?: { expr: string; legendFormat?: string }[] }[];
  templating: { list: { name: string; type: string; definition?: string }[] };
}

const folder = join(repositoryRoot, 'deploy/observability');

/** Every PromQL expression in the alerts and in the dashboard. */
export async function readUsedExpressions(): Promise<UsedExpression[]> {
  return [...(await readAlerts()), ...(await readDashboard())];
}

async function readAlerts(): Promise<UsedExpression[]> {
  const { spec } = parse(await readFile(join(folder, 'alerts.yaml'), 'utf8')) as {
    spec: { groups: { rules: AlertRule[] }[] };
  };
  return spec.groups
    .flatMap(({ rules }) => rules)
    .map(({ alert, expr, annotations }) => ({
      where: `the alert ${alert}`,
      expression: expr,
      mentionedLabels: Object.values(annotations).flatMap((text) => namesIn(text, /\$labels\.(\w+)/g)),
    }));
}

async function readDashboard(): Promise<UsedExpression[]> {
  const { panels, templating } = JSON.parse(
    await readFile(join(folder, 'grafana-dashboard.json'), 'utf8'),
  ) as Dashboard;
  const targets = panels.flatMap(({ title, targets = [] }) =>
    targets.map(({ expr, legendFormat = '' }) => ({
      where: `the panel ${title}`,
      expression: expr.replaceAll('$__rate_interval', '5m'),
      mentionedLabels: namesIn(legendFormat, /\{\{\s*(\w+)\s*\}\}/g),
    })),
  );
  const variables = templating.list
    .filter(({ type }) => type === 'query')
    .map(({ name, definition = '' }) => {
      const [, expression = '', label = ''] = /^label_values\((.+), (\w+)\)$/.exec(definition) ?? [];
      return { where: `the variable ${name}`, expression, mentionedLabels: [label] };
    });
  return [...targets, ...variables];
}

function namesIn(text: string, pattern: RegExp): string[] {
  return [...text.matchAll(pattern)].map(([, name = '']) => name);
}
