import { Type } from 'typebox';

/** What is in the way of opening hours or a block (interface 14, 15). */
export const conflicts = Type.Object(
  {
    appointmentReferences: Type.Array(Type.String(), { description: 'At most 500, by start.' }),
    total: Type.Integer({ description: 'How many there are.' }),
  },
  {
    title: 'Conflicts',
    description: 'Active appointments of the resource that are not over and are in the way. Nothing happens to them.',
    examples: [{ appointmentReferences: [], total: 0 }],
  },
);
