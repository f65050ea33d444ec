//! `/w/{id}/settings`: the workspace's name, publishing rights, usage, question log, and deletion.

use cairn_chassis::status::{Problem, Reason, Violation};
use cairn_proto::domain::Publishers;
use maud::{Markup, html};
use serde_json::{Value, json};

use super::form::{self, Form};
use super::frame::Page;
use super::notice::Notice;
use super::parts::{self, Choice, Field};
use super::visitor::{Here, Visitor};
use super::{Answer, MEMBER, words};
use crate::answers::Usage;
use crate::operations::workspaces::UpdateWorkspace;
use crate::operations::{workspace, workspaces};
use crate::routes::Routes;

pub(super) fn routes() -> Routes {
    Routes::default()
        .get(MEMBER, "/w/{id}/settings", show)
        .post(MEMBER, "/w/{id}/settings/rename", rename)
        .post(MEMBER, "/w/{id}/settings/publishers", change_publishers)
        .post(MEMBER, "/w/{id}/settings/questions", change_question_log)
        .post(MEMBER, "/w/{id}/settings/delete", delete)
}

async fn show(visitor: Visitor) -> Answer {
    page(&visitor, None, None).await
}

async fn rename(visitor: Visitor, form: Form) -> Answer {
    let name = form.trimmed("name");
    match change(&visitor, json!({"name": name})).await {
        Ok(()) => Ok(visitor.done(&address(visitor.here()?), &Notice::Renamed)),
        Err(problem) if problem.reason == Reason::ValidationError => {
            page(&visitor, Some(name), Some(&problem)).await
        }
        Err(problem) => Err(problem.into()),
    }
}

async fn change_publishers(visitor: Visitor, form: Form) -> Answer {
    change(&visitor, json!({"publishers": form.text("publishers")})).await?;
    Ok(visitor.done(&address(visitor.here()?), &Notice::Saved))
}

/// Sets the retention of the question log in days, or switches it off.
async fn change_question_log(visitor: Visitor, form: Form) -> Answer {
    let days = match form.trimmed("days") {
        "off" => Value::Null,
        days => days.parse::<u32>().map_or_else(|_| json!(days), |days| json!(days)),
    };
    change(&visitor, json!({"questionLogDays": days})).await?;
    Ok(visitor.done(&address(visitor.here()?), &Notice::Saved))
}

async fn change(visitor: &Visitor, fields: Value) -> Result<(), Problem> {
    let input: UpdateWorkspace = form::input(fields)?;
    let here = visitor.here().map_err(|_| crate::auth::no_workspace())?;
    workspaces::update(&visitor.person, here.id, input).await.map(drop)
}

/// Deletes the workspace, confirmed by typing its name.
async fn delete(visitor: Visitor, form: Form) -> Answer {
    let here = visitor.here()?;
    if form.text("typed") != here.name {
        let message = "must be typed as it stands here, so that nothing is lost by mistake";
        let wrong = Problem::validation(vec![Violation::new("typed", "mismatch", message)]);
        return page(&visitor, None, Some(&wrong)).await;
    }
    workspaces::delete(&visitor.person, here.id).await?;
    Ok(visitor.done("/workspaces", &Notice::WorkspaceDeleted))
}

fn address(here: &Here) -> String {
    format!("/w/{}/settings", here.id)
}

async fn page(visitor: &Visitor, name: Option<&str>, problem: Option<&Problem>) -> Answer {
    let here = visitor.here()?;
    let (usage, known) = tokio::try_join!(
        workspace::of_member(&visitor.person, here.id),
        workspaces::get(&visitor.person, here.id),
    )?;
    let body = html! {
        (parts::summary(problem, &[("name", "Name"), ("typed", "The name of the workspace")]))
        @if visitor.manages() {
            section.card aria-labelledby="name" {
                h2 #name { "Name" }
                form.fields method="post" action={ (address(here)) "/rename" } {
                    (Field::text("name", "Name").value(name.unwrap_or(&here.name)).problem(problem).render())
                    div.buttons { button.primary type="submit" { "Rename" } }
                }
            }
        }
        (used(here, &usage))
        @if visitor.manages() { (publishers(here, known.publishers.unwrap_or_default())) }
        @if visitor.owns() {
            (question_log(here, known.question_log_days))
            (end(here, problem))
        }
        @else { (parts::not_in_role(here)) }
    };
    let page = Page::new("Settings");
    let page = if problem.is_some() { page.failed() } else { page };
    Ok(page.show(visitor, &body))
}

fn used(here: &Here, usage: &Usage) -> Markup {
    let counted = [
        ("Files", usage.files, false),
        ("Storage", usage.storage_bytes, true),
        ("Documents from outside", usage.documents, false),
        ("Your tokens", usage.tokens, false),
    ];
    html! {
        section.card aria-labelledby="plan" {
            h2 #plan { "Plan and use" }
            dl.facts {
                dt { "Plan" } dd { (here.plan) }
                @for (label, measure, is_bytes) in counted {
                    dt { (label) }
                    dd {
                        @match measure {
                            Some(measure) => (parts::meter(label, measure.used, measure.limit, if is_bytes { words::bytes } else { words::grouped })),
                            None => span.quiet { "not known: the service that counts it does not answer" },
                        }
                    }
                }
            }
            p.hint { "What is in trash, and earlier versions, count too." }
        }
    }
}

fn publishers(here: &Here, now: Publishers) -> Markup {
    let choices = Publishers::ALL.into_iter().map(|publishers| Choice {
        value: publishers.as_str(),
        label: match publishers {
            Publishers::Admins => "Owners and admins",
            Publishers::Editors => "Owners, admins and editors",
            Publishers::Writers => "Everybody who may write",
        },
        is_chosen: publishers == now,
    });
    html! {
        section.card aria-labelledby="publishing" {
            h2 #publishing { "Public memories" }
            p { "A public memory can be read by everybody who has its link. What is public already stays so." }
            form.fields method="post" action={ (address(here)) "/publishers" } {
                (parts::choices("publishers", "Who may make memories public", choices))
                div.buttons { button type="submit" { "Save" } }
            }
        }
    }
}

fn question_log(here: &Here, now: Option<u32>) -> Markup {
    let choices = [("off", "Off"), ("7", "7 days"), ("30", "30 days"), ("90", "90 days")];
    let current = now.map_or_else(|| "off".to_owned(), |days| days.to_string());
    let choices = choices.map(|(value, label)| Choice { value, label, is_chosen: value == current.as_str() });
    html! {
        section.card aria-labelledby="question-log" {
            h2 #question-log { "What is asked" }
            p { "While it is on, every question of agents and people is kept with what they were answered. All members are told so, and see the questions; viewers see their own." }
            form.fields method="post" action={ (address(here)) "/questions" } {
                (parts::choices("days", "Question log", choices))
                p.hint { "Off deletes every question that is kept. A shorter time deletes those that are older." }
                div.buttons { button type="submit" { "Save" } }
            }
        }
    }
}

fn end(here: &Here, problem: Option<&Problem>) -> Markup {
    html! {
        section.card aria-labelledby="end" {
            h2 #end { "Delete this workspace" }
            p { "Its tokens and apps open nothing from then on, and nobody can read what is in it. For a while an owner can restore it from the list of workspaces." }
            form.fields method="post" action={ (address(here)) "/delete" } {
                (Field::text("typed", "The name of the workspace").hint("Type it, to be sure.").problem(problem).render())
                div.buttons { button.danger type="submit" { "Delete workspace" } }
            }
        }
    }
}
