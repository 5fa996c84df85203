import { httpServices } from '@scheduling/runtime';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Manifest } from '../manifest.ts';
import { deployFolder, observability, overlays } from './kustomizations.ts';
import { findManifest, renderKustomization } from './render-kustomization.ts';
import { services } from './service-configuration.ts';

interface PodMonitor extends Manifest {
  spec: {
    jobLabel: string;
    selector: { matchLabels: Record<string, string> };
    podMetricsEndpoints: { port: string; path: string }[];
  };
}

interface PrometheusRule extends Manifest {
  spec: {
    groups: {
      name: string;
      rules: { alert: string; labels: Record<string, string>; annotations: Record<string, string> }[];
    }[];
  };
}

interface Deployment extends Manifest {
  spec: {
    template: { metadata: { labels: Record<string, string> }; spec: { containers: { ports: { name: string }[] }[] } };
  };
}

interface Panel {
  id: number;
  type: string;
  title: string;
  gridPos: { x: number; y: number; w: number; h: number };
  targets?: { expr: string }[];
}

const manifests = renderKustomization(observability.folder);

describe.each(overlays)('the PodMonitor', ({ name, folder }) => {
  const { spec } = findManifest(manifests, 'PodMonitor', 'scheduling') as PodMonitor;
  const deployments = renderKustomization(folder).filter(({ kind }) => kind === 'Deployment') as Deployment[];

  it(`scrapes every service of ${name} at its actual address, and names the job after it`, () => {
    expect(deployments).toHaveLength(services.length);
    for (const {
      metadata,
      spec: { template },
    } of deployments) {
      expect(template.metadata.labels).toMatchObject(spec.selector.matchLabels);
      expect(template.metadata.labels[spec.jobLabel]).toBe(metadata.name);
      const ports = template.spec.containers.flatMap((container) => container.ports.map((port) => port.name));
      for (const endpoint of spec.podMetricsEndpoints)
        expect([ports, endpoint.path]).toEqual([expect.arrayContaining([endpoint.port]), '/metrics']);
    }
  });
});

describe('the alerts', () => {
  const { groups } = (manifests.find(({ kind }) => kind === 'PrometheusRule') as PrometheusRule).spec;
  const rules = groups.flatMap((group) => group.rules);

  it('have unique names', () => {
    const names = [...groups.map(({ name }) => name), ...rules.map(({ alert }) => alert)];
    expect(names).toEqual([...new Set(names)]);
  });

  it.each(rules.map((rule) => [rule.alert, rule] as const))(
    '%s states its severity, its meaning and where to read on',
    (alert, { labels, annotations }) => {
      expect(['critical', 'warning']).toContain(labels['severity']);
      expect(annotations['summary']).toMatch(/^[A-Z{].{10,}[^.]$/);
      expect(annotations['description']).toMatch(/^[A-Z{].{20,}\.$/);
      const section = alert.replaceAll(/(?<!^)([A-Z])/g, '-$1').toLowerCase();
      expect(annotations['runbook_url']).toMatch(new RegExp(`/docs/operations\\.md#alert-${section}$`));
    },
  );
});

describe('the dashboard', () => {
  const text = readFileSync(join(deployFolder, 'observability/grafana-dashboard.json'), 'utf8');
  const { panels, templating } = JSON.parse(text) as { panels: Panel[]; templating: { list: { name: string }[] } };

  it('lets users choose the data source, the namespace and the CRM, and uses no other data source', () => {
    expect(templating.list.map(({ name }) => name)).toEqual(['datasource', 'namespace', 'crm']);
    const used = new Set([...text.matchAll(/\$\{?(\w+)/g)].map(([, name]) => name));
    expect(used).toEqual(new Set(['__all', '__rate_interval', 'crm', 'datasource', 'namespace']));
    expect(new Set([...text.matchAll(/"uid": "([^"]*)"/g)].map(([, uid]) => uid))).toEqual(
      new Set(['${datasource}', 'scheduling']),
    );
  });

  it('shows a single namespace in every panel', () => {
    for (const { title, targets = [] } of panels)
      for (const { expr } of targets) expect(expr, title).toContain('namespace=~"$namespace"');
  });

  it('shows the requests of clients and those of persons apart', () => {
    const requests = panels
      .flatMap(({ targets = [] }) => targets.map(({ expr }) => expr))
      .filter((expr) => expr.includes('http_server_request_duration_seconds'));
    const served = requests.map((expr) => [...expr.matchAll(/duration_seconds_\w+\{[^}]*service="(\w+)"/g)]);
    for (const [index, expr] of requests.entries())
      expect(served[index], expr).toHaveLength(expr.split('http_server_request_duration_seconds').length - 1);
    const shown = new Set(served.flat().map(([, service]) => service));
    expect(shown).toEqual(new Set(httpServices));
  });

  it('has panels that neither overlap nor share an id', () => {
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
    const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: h * w }, (_, cell) => `${x + (cell % w)},${y + Math.floor(cell / w)}`),
    );
    expect(new Set(cells).size).toBe(cells.length);
    expect(Math.max(...panels.map(({ gridPos: { x, w } }) => x + w))).toBe(24);
  });
});
