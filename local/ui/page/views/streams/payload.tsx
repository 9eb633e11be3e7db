import { useEffect, useState } from 'preact/hooks';
import { send } from '../../api/page-client.ts';
import { errorOf } from '../../api/problem-text.ts';
import type { ApiError } from '../../api/problem-text.ts';
import { download } from '../../lib/save-as.ts';
import { bytesText } from '../../lib/format.ts';
import { Button } from '../../parts/button.tsx';
import { Card } from '../../parts/card.tsx';
import { JsonView } from '../../parts/code.tsx';
import { ErrorState, Notice } from '../../parts/empty-state.tsx';
import { Skeleton } from '../../parts/loading.tsx';
import { Hex } from './hex.tsx';
import { addressOf } from './name-search.ts';
import type { LineDocument } from '../../../../../handlers/documents/streams.ts';

/** The data of an event as what they are: JSON, text, or bytes. */
export function Payload({
  line,
  stream,
  number,
  resolvesLinks,
}: {
  readonly line: LineDocument;
  readonly stream: string;
  readonly number: number;
  readonly resolvesLinks: boolean;
}) {
  const name = `${fileName(stream)}-${number}`;
  const read = async () =>
    new Uint8Array(
      await (
        await send('GET', addressOf(stream, number), undefined, {
          headers: { accept: 'application/octet-stream', 'es-resolvelinktos': String(resolvesLinks) },
        })
      ).arrayBuffer(),
    );
  const save = (
    <Button
      kind="quiet"
      isSmall
      icon="download"
      title="The data, byte for byte"
      onClick={() =>
        void read().then((bytes) =>
          download(
            `${name}.${line.isJson ? 'json' : 'bin'}`,
            bytes as Uint8Array<ArrayBuffer>,
            'application/octet-stream',
          ),
        )
      }
    >
      Raw
    </Button>
  );
  if (line.isRedacted)
    return (
      <Card title="Data">
        <Notice tone="info">The data was redacted.</Notice>
      </Card>
    );
  if (line.data === null)
    return <Bytes key={`${stream} ${number} ${resolvesLinks}`} read={read} name={name} save={save} />;
  const { data } = line;
  if (data === '')
    return (
      <Card title="Data">
        <p class="muted">None.</p>
      </Card>
    );
  return (
    <Card title="Data" note={bytesText(new Blob([data]).size)} actions={save}>
      <JsonOrText text={data} name={`${name}.json`} isMarked />
    </Card>
  );
}

/** `isMarked`: it was written as JSON, so that what is none is worth a word. */
export function JsonOrText({
  text,
  name,
  isMarked = false,
}: {
  readonly text: string;
  readonly name: string;
  readonly isMarked?: boolean;
}) {
  return (
    <div class="stack tight">
      <JsonView
        text={text}
        name={name}
        note={isMarked && <Notice tone="warn">It was written as JSON but is not valid JSON.</Notice>}
      />
    </div>
  );
}

function Bytes({
  read,
  name,
  save,
}: {
  readonly read: () => Promise<Uint8Array>;
  readonly name: string;
  readonly save: preact.ComponentChildren;
}) {
  const [bytes, setBytes] = useState<Uint8Array | null>(null);
  const [error, setError] = useState<ApiError | null>(null);
  const [isHex, setHex] = useState<boolean | null>(null);
  const load = () => read().then(setBytes, (thrown: unknown) => setError(errorOf(thrown)));
  useEffect(() => void load(), []);
  if (bytes === null)
    return (
      <Card title="Data">
        {error === null ? <Skeleton /> : <ErrorState error={error} what="The data" onRetry={() => void load()} />}
      </Card>
    );
  if (bytes.length === 0)
    return (
      <Card title="Data">
        <p class="muted">None.</p>
      </Card>
    );
  const text = textOf(bytes);
  const showsHex = isHex ?? text === null;
  return (
    <Card
      title="Data"
      note={bytesText(bytes.length)}
      actions={
        <>
          {text !== null && (
            <div class="segments" role="group" aria-label="Shown as">
              <Button kind="quiet" isSmall isPressed={!showsHex} onClick={() => setHex(false)}>
                Text
              </Button>
              <Button kind="quiet" isSmall isPressed={showsHex} onClick={() => setHex(true)}>
                Bytes
              </Button>
            </div>
          )}
          {save}
        </>
      }
    >
      {showsHex ? <Hex bytes={bytes} name={`${name}.bin`} /> : <JsonOrText text={text!} name={`${name}.txt`} />}
    </Card>
  );
}

/** Null for what is no text: not UTF-8, or with characters that no text has. */
function textOf(bytes: Uint8Array): string | null {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    return /[^\P{Cc}\t\n\v\f\r]/u.test(text) ? null : text;
  } catch {
    return null;
  }
}

/** What every system takes as the name of a file. */
function fileName(stream: string): string {
  return stream
    .replaceAll(/[^\w.-]+/g, '_')
    .replace(/^\.+/, '_')
    .slice(0, 60);
}
