//! `/v1/tenants`: the plan and the own quotas of each tenant, for administrators.

mod import;
mod rules;

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::http::{HeaderMap, header};
use hyper::body::Body;
use serde_json::{Value, json as value};
use tokio::time::timeout;
use tollgate::model::Store;
use tollgate::tenants::{
    MAX_TENANT_NAME, TenantBatch, TenantStorage, TenantStore, TenantStoreError, TenantsChanged,
};

use self::import::{RowFormat, RowReader};
use self::rules::RowRules;
use super::app::App;
use super::audit::{Actor, AuditEvent};
use super::body::next_piece;
use super::json;
use super::problem::{Kind, Problem};
use super::query::{decoded_path, invalid, parameters};
use super::respond::Answer;
use super::route::TENANT_PREFIX;
use super::wire::{
    ImportResponse, TenantDetails, TenantLocation, TenantRequest, TenantResponse, TenantsResponse,
};

/// The most bytes of an import.
pub const MAX_IMPORT_BYTES: usize = 128 << 20;

/// The longest time from the head of an import to its last byte.
const IMPORT_TIMEOUT: Duration = Duration::from_secs(120);

/// The most tenants of one page.
pub const MAX_TENANTS_PAGE: usize = 10_000;

/// The number of tenants on a page if the query has no `count`.
const TENANTS_PAGE: usize = 100;

/// The number of examined rows at which the search for one page stops, at the end of the current
/// partition. A page can therefore have fewer tenants than requested although further tenants
/// exist.
const SCANNED: usize = 100_000;

impl<S: Store + 'static> App<S> {
    /// Returns one page of the tenants.
    pub(super) fn tenants(&self, query: &str) -> Answer {
        let store = self.tenant_store()?;
        let ListQuery { prefix, after, count } = ListQuery::read(query)?;
        let tenants = self.limiter.tenants();
        let (page, next) = tenants.list(&prefix, after.as_deref(), (count, SCANNED));
        let (location, loaded, failure) = match store.storage() {
            TenantStorage::InProcess => (TenantLocation::Process, true, None),
            TenantStorage::InStore { is_loaded, failure } => {
                (TenantLocation::Store, is_loaded, failure)
            }
        };
        let (count, page) = (tenants.len() as u64, page.into_iter().map(Into::into).collect());
        let body = TenantsResponse { location, loaded, failure, count, tenants: page, next };
        Ok(json::write(&body)?)
    }

    /// Returns the row of one tenant.
    pub(super) fn tenant(&self, path: &str) -> Answer {
        self.tenant_store()?;
        let name = name(path)?;
        let found = self.limiter.tenants().get(&name);
        let found = found.ok_or_else(|| {
            Problem::new(Kind::NotFound, format!("there is no tenant {name:?}: it has the default"))
        })?;
        Ok(json::write(&TenantDetails::from(found))?)
    }

    /// Sets the row of one tenant.
    pub(super) async fn set_tenant(&self, path: &str, body: &[u8], actor: &Actor) -> Answer {
        self.tenant_store()?;
        let name = name(path)?;
        let request: TenantRequest<'_> = json::read(body)?;
        let row = request.row(&name);
        RowRules::of(&self.limiter.policy()).check(&row).map_err(unfit)?;
        let mut batch = TenantBatch::default();
        batch.set(&row).map_err(|error| unfit(error.to_string()))?;
        self.change_tenant("tenant set", &name, batch, actor).await
    }

    /// Removes the row of one tenant. The request also succeeds if the row does not exist.
    pub(super) async fn remove_tenant(&self, path: &str, actor: &Actor) -> Answer {
        self.tenant_store()?;
        let name = name(path)?;
        let mut batch = TenantBatch::default();
        batch.remove(&name);
        self.change_tenant("tenant removed", &name, batch, actor).await
    }

    async fn change_tenant(
        &self,
        action: &'static str,
        name: &str,
        batch: TenantBatch,
        actor: &Actor,
    ) -> Answer {
        let row = || self.limiter.tenants().get(name).map(TenantDetails::from);
        let before = row();
        self.apply_tenants(batch).await?;
        let after = row();
        let json = |row: &Option<TenantDetails>| serde_json::to_value(row).unwrap_or_default();
        let (target, before_told, after_told) =
            (value!({ "tenant": name }), json(&before), json(&after));
        self.note(actor, AuditEvent { action, target, before: before_told, after: after_told });
        Ok(json::write(&TenantResponse { before, after })?)
    }

    /// Reads rows as they arrive, and stores all of them if all are valid.
    pub(super) async fn import_tenants<B: Body<Data = Bytes>>(
        self: &Arc<Self>,
        query: &str,
        headers: &HeaderMap,
        body: B,
        actor: Actor,
    ) -> Answer {
        self.tenant_store()?;
        let format = RowFormat::of(headers).ok_or_else(|| {
            let detail = "send `content-type: text/csv` or `content-type: application/x-ndjson`";
            Problem::new(Kind::UnsupportedMediaType, detail)
        })?;
        let batch = match query {
            "" => TenantBatch::default(),
            "replace=true" => TenantBatch::replacing(),
            _ => return Err(invalid("the only parameter is `replace=true`")),
        };
        let busy = "another import is running on this node: try again later";
        let turn = Arc::clone(&self.importing).try_lock_owned();
        let turn = turn.map_err(|_| Problem::new(Kind::Busy, busy))?;
        let rules = RowRules::of(&self.limiter.policy());
        let reader = RowReader::new(format, rules, batch);
        let read = timeout(IMPORT_TIMEOUT, read_rows(headers, body, reader)).await;
        let batch = read.unwrap_or_else(|_| {
            let within = IMPORT_TIMEOUT.as_secs();
            let detail = format!("the body did not arrive within {within} s");
            Err(Problem::new(Kind::SlowBody, detail))
        })?;
        let app = Arc::clone(self);
        let store = async move {
            let _turn = turn;
            app.store_rows(batch, &actor).await
        };
        self.in_own_task(store).await
    }

    async fn store_rows(&self, batch: TenantBatch, actor: &Actor) -> Answer {
        let (rows, replaces) = (batch.len() as u64, batch.replaces());
        let TenantsChanged { before, after } = self.apply_tenants(batch).await?;
        let (before, after) = (before as u64, after as u64);
        let event = AuditEvent {
            action: "tenants imported",
            target: value!({ "rows": rows, "replace": replaces }),
            before: Value::from(before),
            after: Value::from(after),
        };
        self.note(actor, event);
        Ok(json::write(&ImportResponse { rows, before, after })?)
    }

    async fn apply_tenants(&self, batch: TenantBatch) -> Result<TenantsChanged, Problem> {
        let store = self.tenant_store()?;
        store.apply(self.limiter.now(), batch).await.map_err(|error| match error {
            TenantStoreError::Store { .. } => {
                Problem::new(Kind::StoreUnavailable, error.to_string())
            }
            _ => Problem::new(Kind::TenantsRefused, error.to_string()),
        })
    }

    fn tenant_store(&self) -> Result<&dyn TenantStore, Problem> {
        let store = self.options.tenants.as_deref();
        let store = store.ok_or_else(|| {
            Problem::new(Kind::NotFound, "this listener does not support tenants")
        })?;
        if self.limiter.policy().tenant_dimension().is_none() {
            let detail = "the policy has no tenants: add `tenants: { by: SUBJECT }`";
            return Err(Problem::new(Kind::NotFound, detail));
        }
        Ok(store)
    }
}

async fn read_rows<B: Body<Data = Bytes>>(
    headers: &HeaderMap,
    body: B,
    mut reader: RowReader,
) -> Result<TenantBatch, Problem> {
    let too_large = || {
        let detail = format!("an import has at most {MAX_IMPORT_BYTES} bytes: send several");
        Problem::new(Kind::BodyTooLarge, detail)
    };
    let announced =
        headers.get(header::CONTENT_LENGTH).and_then(|it| it.to_str().ok()?.parse().ok());
    let mut left = MAX_IMPORT_BYTES;
    if announced.is_some_and(|length: usize| length > left) {
        return Err(too_large());
    }
    let mut body = pin!(body);
    while let Some(piece) = next_piece(body.as_mut()).await? {
        left = left.checked_sub(piece.len()).ok_or_else(too_large)?;
        reader.read(&piece).map_err(unfit)?;
        // Rows that arrive fast must not keep other tasks from running.
        tokio::task::consume_budget().await;
    }
    reader.finish().map_err(unfit)
}

fn unfit(detail: String) -> Problem {
    Problem::new(Kind::InvalidTenant, detail)
}

/// Returns the decoded name of the tenant in `path`.
fn name(path: &str) -> Result<String, Problem> {
    let name = decoded_path(path.strip_prefix(TENANT_PREFIX).unwrap_or_default())?;
    if name.len() > MAX_TENANT_NAME {
        return Err(unfit(format!("the name of a tenant has at most {MAX_TENANT_NAME} bytes")));
    }
    Ok(name)
}

/// The parsed query of a list.
struct ListQuery {
    prefix: String,
    after: Option<String>,
    count: usize,
}

impl ListQuery {
    fn read(query: &str) -> Result<Self, Problem> {
        let mut read = Self { prefix: String::new(), after: None, count: TENANTS_PAGE };
        for (name, value) in parameters(query)? {
            let value = value.ok_or_else(|| invalid(format!("`{name}` has no value")))?;
            match &*name {
                "prefix" => read.prefix = value,
                "after" => read.after = Some(value),
                "count" => {
                    let count = value.parse().ok().filter(|it| (1..=MAX_TENANTS_PAGE).contains(it));
                    read.count = count.ok_or_else(|| {
                        invalid(format!("`count` is a number from 1 to {MAX_TENANTS_PAGE}"))
                    })?;
                }
                _ => {
                    let known = "`prefix=TEXT`, `after=TENANT` and `count=NUMBER`";
                    return Err(invalid(format!(
                        "unknown parameter {name:?}: the parameters are {known}"
                    )));
                }
            }
        }
        Ok(read)
    }
}
