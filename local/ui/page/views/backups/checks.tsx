import { useState } from 'preact/hooks';
import { bytesText, durationText } from '../../lib/format.ts';
import { Badge } from '../../parts/badge.tsx';
import type { Tone } from '../../parts/badge.tsx';
import { Card } from '../../parts/card.tsx';
import { JsonView } from '../../parts/code.tsx';
import { Command } from '../../parts/command.tsx';
import { Definitions } from '../../parts/definitions.tsx';
import { Dialog } from '../../parts/dialog.tsx';
import { EmptyState } from '../../parts/empty-state.tsx';
import { Table } from '../../parts/table.tsx';
import type { Column } from '../../parts/table.tsx';
import { Time } from '../../parts/time.tsx';
import type { BackupCommands } from '../../../../../core/backup/api.ts';
import type { CheckDocument, CheckFindingDocument } from '../../../../../handlers/documents/backup.ts';

/** What was checked since the start of the node, and what came of it. */
export function ChecksCard({
  checks,
  commands,
}: {
  readonly checks: readonly CheckDocument[];
  readonly commands: BackupCommands | null;
}) {
  const [open, setOpen] = useState<CheckDocument | null>(null);
  return (
    <Card
      isFlush={checks.length > 0}
      title="Checks"
      note={checks.length > 0 ? 'most recent, since the node started' : undefined}
    >
      <Table
        label="Checks"
        columns={COLUMNS}
        rows={checks}
        keyOf={({ checkId }) => checkId}
        onOpen={setOpen}
        empty={
          <EmptyState icon="shield" title="No checks since the node started">
            A drill restores a backup to test it; a verification checks the repository. Both can also run on another
            machine, from a scheduler:
            {commands !== null && (
              <span class="check-commands">
                <Command text={commands.drill} />
                <Command text={commands.verify} />
              </span>
            )}
          </EmptyState>
        }
      />
      <Dialog
        title={open?.kind === 'drill' ? 'Drill' : 'Verification'}
        isOpen={open !== null}
        onClose={() => setOpen(null)}
        size="large"
      >
        {open !== null && <One check={open} />}
      </Dialog>
    </Card>
  );
}

function resultOf({ state, isGood }: CheckDocument): { readonly word: string; readonly tone: Tone } {
  if (state === 'running') return { word: 'Running', tone: 'info' };
  if (state === 'aborted') return { word: 'Stopped', tone: 'plain' };
  if (state === 'failed') return { word: 'Could not run', tone: 'bad' };
  return isGood === true ? { word: 'Passed', tone: 'ok' } : { word: 'Errors found', tone: 'bad' };
}

/** A drill counts only what it has restored, and tells it at its end. */
function readOf({ report, bytesDone }: CheckDocument): number {
  return report !== null && 'bytes' in report ? report.bytes : bytesDone;
}

const COLUMNS: readonly Column<CheckDocument>[] = [
  { name: 'kind', title: 'Check', width: '9rem', render: ({ kind }) => (kind === 'drill' ? 'Drill' : 'Verification') },
  {
    name: 'result',
    title: 'Result',
    width: '11rem',
    render: (check) => <Badge tone={resultOf(check).tone}>{resultOf(check).word}</Badge>,
  },
  { name: 'ended', title: 'Ended', render: ({ endedAt }) => <Time at={endedAt} show="exact" /> },
  {
    name: 'took',
    title: 'Duration',
    width: '7rem',
    align: 'end',
    isMinor: true,
    render: ({ elapsedSeconds }) => durationText(elapsedSeconds * 1_000),
  },
  {
    name: 'read',
    title: 'Read',
    width: '7rem',
    align: 'end',
    isMinor: true,
    render: (check) => bytesText(readOf(check)),
  },
];

const FINDINGS: readonly Column<CheckFindingDocument>[] = [
  {
    name: 'where',
    title: 'Where',
    width: '35%',
    render: ({ where }) => <code class="break">{where}</code>,
    isLong: true,
  },
  { name: 'kind', title: 'Kind', width: '7rem', render: ({ kind }) => kind },
  { name: 'message', title: 'Problem', render: ({ message }) => message, isLong: true },
];

function One({ check }: { readonly check: CheckDocument }) {
  const findings = check.report?.findings ?? [];
  return (
    <div class="stack">
      <Definitions
        isWide
        items={[
          ['Result', <Badge tone={resultOf(check).tone}>{resultOf(check).word}</Badge>],
          check.error === null ? null : ['Why', <span class="break">{check.error}</span>],
          ['Started', <Time at={check.startedAt} show="exact" />],
          ['Duration', durationText(check.elapsedSeconds * 1_000)],
          ['Read', bytesText(readOf(check))],
        ]}
      />
      {findings.length > 0 && (
        <Table
          label="Problems"
          columns={FINDINGS}
          rows={findings}
          keyOf={({ where, message }) => `${where} ${message}`}
        />
      )}
      {check.report !== null && <JsonView text={JSON.stringify(check.report)} name={`${check.kind}.json`} />}
    </div>
  );
}
