import { isDone } from './effects.ts';
import type { Block } from '../load/model.ts';
import type { Evidence, Violation } from './evidence.ts';
import { describe, hadPlaceBefore, type Stay, staysOf } from './stays.ts';

/**
 * I18: from the moment at which a block is there, nobody books in it, and everybody who has booked in it before is named
 * by the answer.
 */
export function checkBlocks({ lists, injected }: Evidence): Violation[] {
  return [...lists].flatMap(([provider, shown]) => {
    const stays = staysOf(provider, shown, injected);
    return provider.blocks
      .filter(({ created }) => isDone(created))
      .flatMap((block) => {
        const inside = stays.filter((stay) => isInside(stay, block));
        return [
          ...inside
            .filter((stay) => beganIn(stay, block) && !hadPlaceBefore(stay))
            .map((stay) => violation(`${describe(stay)} was booked in ${block.reference}`)),
          ...inside
            .filter((stay) => wasThere(stay, block) && !isNamed(stay, block))
            .map((stay) => violation(`${describe(stay)} is in ${block.reference}, but was not named as a conflict`)),
        ];
      });
  });
}

/** Touching is not overlapping. */
function isInside({ resource, startMs, endMs, change, untilMs }: Stay, block: Block): boolean {
  return (
    resource === block.resource &&
    startMs < block.endMs &&
    endMs > block.startMs &&
    change.operation.endedMs < deletedMs(block) &&
    untilMs > block.created.endedMs
  );
}

function beganIn({ change }: Stay, { created }: Block): boolean {
  return change.operation.startedMs > created.endedMs;
}

/** When the block came. What was being booked meanwhile is either refused or there. */
function wasThere({ change, isCertain, appointment }: Stay, { created }: Block): boolean {
  return isCertain && appointment !== undefined && change.operation.startedMs < created.endedMs;
}

function isNamed({ appointment }: Stay, { conflicts }: Block): boolean {
  return conflicts === undefined || conflicts.appointmentReferences.includes(appointment!);
}

/** From when on it may be gone. */
function deletedMs({ deleted }: Block): number {
  return deleted?.startedMs ?? Number.POSITIVE_INFINITY;
}

function violation(text: string): Violation {
  return { invariant: 'I18', text };
}
