import { createConfig, lintFromString } from '@redocly/openapi-core';
import { type RulesetDefinition, Spectral } from '@stoplight/spectral-core';
import { oas } from '@stoplight/spectral-rulesets';
import { expect, it } from 'vitest';
import { apiDocument } from '@scheduling/test-stack/client';

const { text } = await apiDocument();

it('Redocly finds nothing in the API document as served', async () => {
  const problems = await lintFromString({ source: text, config: await createConfig({ extends: ['recommended'] }) });
  expect(problems.map(({ ruleId, message }) => `${ruleId}: ${message}`)).toEqual([]);
});

it('Spectral finds nothing in the API document as served, not even warnings', async () => {
  const spectral = new Spectral();
  spectral.setRuleset({ extends: oas as RulesetDefinition });
  const findings = await spectral.run(JSON.parse(text));
  expect(findings.map(({ code, message, path }) => `${code}: ${path.join('/')} ${message}`)).toEqual([]);
});
