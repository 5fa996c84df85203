import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse, stringify } from 'yaml';
import type { Manifest } from '../manifest.ts';
import { observability } from './kustomizations.ts';
import { renderKustomization } from './render-kustomization.ts';

interface PrometheusRule extends Manifest {
  spec: { groups: { rules: { alert: string }[] }[] };
}

interface AlertTests {
  tests: { alert_rule_test: { alertname: string; exp_alerts: unknown[] }[] }[];
}

const testFolder = join(import.meta.dirname, 'alerts');
const testFiles = readdirSync(testFolder);
const { spec } = renderKustomization(observability.folder).find(
  ({ kind }) => kind === 'PrometheusRule',
) as PrometheusRule;

// They take as long as all other tests of this project together, and only a change of the alerts can break them.
describe.skipIf(process.env['PROMTOOL'] !== 'required')('the alerts (PROMTOOL=required runs them)', () => {
  let folder: string;

  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'alerts-'));
    cpSync(testFolder, folder, { recursive: true });
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  /** With a rule file of those alerts. Prometheus has no objects of Kubernetes: the spec is its rule file. */
  function expectSuccess(isIncluded: (alert: string) => boolean, ...parameters: string[]): void {
    const groups = spec.groups.map((group) => ({
      ...group,
      rules: group.rules.filter(({ alert }) => isIncluded(alert)),
    }));
    writeFileSync(join(folder, 'alerts.yaml'), stringify({ groups: groups.filter(({ rules }) => rules.length > 0) }));
    const { status, stdout, stderr, error } = spawnSync('promtool', parameters, { cwd: folder, encoding: 'utf8' });
    expect(status, error?.message ?? stdout + stderr).toBe(0);
  }

  it('are valid rules', () => expectSuccess(() => true, 'check', 'rules', 'alerts.yaml'));

  it.each(testFiles)('fire and do not fire as %s expects, with its labels and texts', (file) => {
    const tested = alertsOf(file);
    // The time that promtool takes grows with the rules.
    expectSuccess((alert) => tested.has(alert), 'test', 'rules', file);
  });
});

describe('the tests of the alerts', () => {
  const expectations = testFiles.flatMap(expectationsOf);
  const alerts = new Set(spec.groups.flatMap(({ rules }) => rules.map(({ alert }) => alert)));
  const tested = (isFiring: boolean): Set<string> =>
    new Set(
      expectations
        .filter((expectation) => expectation.exp_alerts.length > 0 === isFiring)
        .map(({ alertname }) => alertname),
    );

  // A name that does not exist never fires, whatever the test is supposed to show.
  it('show every alert firing, and no other name', () => expect(tested(true)).toEqual(alerts));

  it('show every alert not firing, and no other name', () => expect(tested(false)).toEqual(alerts));
});

function expectationsOf(file: string) {
  return (parse(readFileSync(join(testFolder, file), 'utf8')) as AlertTests).tests.flatMap(
    (test) => test.alert_rule_test,
  );
}

function alertsOf(file: string): Set<string> {
  return new Set(expectationsOf(file).map(({ alertname }) => alertname));
}
