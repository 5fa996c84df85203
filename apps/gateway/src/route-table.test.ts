import { describe, expect, it } from 'vitest';
import { requireDeclaredScopes } from './route-table.ts';

describe('a route', () => {
  const page = { method: 'GET', url: '/docs', keyScope: undefined };
  const read = { method: 'GET', url: '/crms/:crmId/events', keyScope: 'read' as const };

  it('of a CRM must name the scope that it needs, or the gateway does not start', () => {
    requireDeclaredScopes([page, read]);
    const undeclared = { ...read, keyScope: undefined };
    expect(() => requireDeclaredScopes([page, read, undeclared])).toThrow(
      'routes whose config has no keyScope: GET /crms/:crmId/events',
    );
  });
});
