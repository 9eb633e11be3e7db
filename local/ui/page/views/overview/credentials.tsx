import type { LoadedCertificate, NodeWarning, OverviewView } from '../../../../../handlers/documents/node.ts';
import { roughText } from '../../lib/format.ts';
import { now } from '../../lib/now.ts';
import { Badge } from '../../parts/badge.tsx';
import type { Tone } from '../../parts/badge.tsx';
import { Card } from '../../parts/card.tsx';
import { Definitions } from '../../parts/definitions.tsx';
import { Time } from '../../parts/time.tsx';

/** Days before its end in which a certificate of an authority should be renewed, and in which it must. */
const SOON_DAYS = 30;
const LATE_DAYS = 7;

function toneOf({ kind, daysLeft }: LoadedCertificate, warnings: readonly NodeWarning[]): Tone {
  if (daysLeft < 0) return 'bad';
  // When the node warns of its own one depends on how long it was given for.
  if (kind === 'node') return TONES[warnings.find(({ code }) => code === 'certificate-expires')?.severity ?? 'ok'];
  if (daysLeft < LATE_DAYS) return 'bad';
  return daysLeft < SOON_DAYS ? 'warn' : 'ok';
}

const TONES = { error: 'bad', warning: 'warn', info: 'info', ok: 'ok' } as const;

export function Certificates({
  data: {
    certificates,
    warnings,
    node: { isSecure },
  },
}: {
  readonly data: OverviewView;
}) {
  return (
    <Card title="Certificates">
      {certificates.length === 0 && (
        <p class="muted">{isSecure ? 'The node reports none.' : 'The node runs without TLS, so it has none.'}</p>
      )}
      <ul class="credentials">
        {certificates.map((certificate) => (
          <li key={certificate.thumbprint}>
            <div class="row spread">
              <strong class="truncate" title={certificate.subject}>
                {certificate.subject}
              </strong>
              <Badge tone={toneOf(certificate, warnings)}>
                {certificate.daysLeft < 0
                  ? 'expired'
                  : `${roughText(Date.parse(certificate.notAfter) - now.value)} left`}
              </Badge>
            </div>
            <div class="small muted">
              {certificate.kind}, until <Time at={certificate.notAfter} show="absolute" />
            </div>
            <div class="small faint truncate" title={certificate.serial}>
              Serial {certificate.serial}
            </div>
            <div class="small faint truncate" title={certificate.thumbprint}>
              Thumbprint {certificate.thumbprint}
            </div>
          </li>
        ))}
      </ul>
    </Card>
  );
}

const SOURCES = { 'built-in': 'Built in', key: 'From a key', none: 'None' } as const;

export function Licence({ licence: { source, expiresAt, refusal } }: { readonly licence: OverviewView['licence'] }) {
  return (
    <Card title="Licence">
      <Definitions
        items={[
          ['Source', <Badge tone={source === 'none' ? 'warn' : 'ok'}>{SOURCES[source]}</Badge>],
          expiresAt === null ? ['Expires', 'never'] : ['Expires', <Time at={expiresAt} show="exact" />],
          refusal === null ? null : ['Refused', refusal],
        ]}
      />
    </Card>
  );
}
