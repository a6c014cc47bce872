//! The operations on tenants, for administrators.

use serde_json::{Map, Value, json};

use super::operation::{Body, Holds, Operation, of};
use crate::http::problem::Kind;
use crate::http::route::TENANT_PATH;
use crate::http::tenants::MAX_TENANTS_PAGE;
use crate::http::wire::{
    ImportResponse, TenantDetails, TenantRequest, TenantResponse, TenantsResponse,
};

/// The endpoints of tenants, which require an administrator's token.
pub(super) const TENANTS: &[Operation] = &[
    Operation {
        path: "/v1/tenants",
        method: "get",
        id: "tenants",
        summary: "List the tenants",
        description: "Returns one page of the tenants with a plan or own quotas, and where they \
            are stored. The order is by a hash of their names.",
        body: None,
        parameters: listing,
        answer: Holds::Json(of::<TenantsResponse>),
        response: "One page of tenants.",
        refusal: None,
        problems: &[Kind::InvalidQuery, Kind::NotFound],
    },
    Operation {
        path: "/v1/tenants",
        method: "post",
        id: "importTenants",
        summary: "Import tenants",
        description: "Sets the rows in CSV or JSON lines. If a row is invalid, none is imported. \
            If the store fails meanwhile, some rows may be stored: send all of them again. Every \
            node applies them within a second.",
        body: None,
        parameters: importing,
        answer: Holds::Json(of::<ImportResponse>),
        response: "The number of rows, and of tenants before and after.",
        refusal: None,
        problems: &[
            Kind::InvalidQuery,
            Kind::InvalidTenant,
            Kind::TenantsRefused,
            Kind::StoreUnavailable,
            Kind::NotFound,
            Kind::Busy,
            Kind::SlowBody,
            Kind::BodyTooLarge,
            Kind::UnsupportedMediaType,
        ],
    },
    Operation {
        method: "get",
        id: "tenant",
        summary: "Return a tenant",
        description: "Returns the plan and the own quotas of the tenant.",
        answer: Holds::Json(of::<TenantDetails>),
        response: "The tenant.",
        ..TENANT
    },
    Operation {
        method: "put",
        id: "setTenant",
        summary: "Set the plan and the own quotas of a tenant",
        description: "Replaces the whole row of the tenant. Used units stay used, and running \
            windows end at the same time. Every node applies it within a second.",
        body: Some(Body {
            schema: of::<TenantRequest<'_>>,
            examples: &[
                ("plan", r#"{"plan":"pro"}"#),
                ("own", r#"{"plan":"pro","quotas":{"core":{"quota":20000}}}"#),
            ],
        }),
        answer: Holds::Json(of::<TenantResponse>),
        response: "The previous and the new row.",
        problems: &[
            Kind::InvalidJson,
            Kind::InvalidTenant,
            Kind::TenantsRefused,
            Kind::StoreUnavailable,
            Kind::NotFound,
        ],
        ..TENANT
    },
    Operation {
        method: "delete",
        id: "removeTenant",
        summary: "Remove the row of a tenant",
        description: "The tenant has the default quotas again. Removing a tenant that has no row \
            succeeds.",
        answer: Holds::Json(of::<TenantResponse>),
        response: "The previous row.",
        problems: &[
            Kind::InvalidTenant,
            Kind::TenantsRefused,
            Kind::StoreUnavailable,
            Kind::NotFound,
        ],
        ..TENANT
    },
];

const TENANT: Operation = Operation {
    path: TENANT_PATH,
    method: "get",
    id: "tenant",
    summary: "",
    description: "",
    body: None,
    parameters: name,
    answer: Holds::Nothing,
    response: "",
    refusal: None,
    problems: &[Kind::InvalidTenant, Kind::NotFound],
};

/// Adds the description of the body of an import, which is not JSON.
pub(super) fn describe_import(paths: &mut Map<String, Value>) {
    let Some(import) = paths.get_mut("/v1/tenants").map(|path| &mut path["post"]) else { return };
    let content = |description: &str, example: &str| {
        json!({
            "schema": { "type": "string", "description": description },
            "example": example,
        })
    };
    import["requestBody"] = json!({
        "required": true,
        "content": {
            "text/csv": content(
                "RFC 4180. Quotas are LIMIT=QUOTA or LIMIT=QUOTA/BURST, separated by spaces.",
                "tenant,plan,quotas\nacme,pro,core=20000\nother,free,\n",
            ),
            "application/x-ndjson": content(
                "One JSON object on each line.",
                "{\"tenant\":\"acme\",\"plan\":\"pro\",\"quotas\":{\"core\":{\"quota\":20000}}}\n",
            ),
        },
    });
}

fn name() -> Vec<Value> {
    vec![json!({
        "name": "tenant",
        "in": "path",
        "required": true,
        "description": "The name of the tenant, percent-encoded.",
        "schema": { "type": "string", "minLength": 1, "maxLength": 128 },
    })]
}

fn listing() -> Vec<Value> {
    let parameter = |name: &str, description: &str, schema: Value| json!({ "name": name, "in": "query", "description": description, "schema": schema });
    let text = || json!({ "type": "string" });
    let count = json!({
        "type": "integer", "minimum": 1, "maximum": MAX_TENANTS_PAGE, "default": 100,
    });
    vec![
        parameter("prefix", "The prefix of the names.", text()),
        parameter("after", "The `next` of the previous page.", text()),
        parameter("count", "The most tenants of the page.", count),
    ]
}

fn importing() -> Vec<Value> {
    vec![json!({
        "name": "replace",
        "in": "query",
        "description": "True if tenants that the import does not have are removed.",
        "schema": { "type": "boolean", "enum": [true] },
    })]
}
