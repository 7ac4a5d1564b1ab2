require "rails_helper"

RSpec.describe "Applications" do
  let(:grace) { account("employer", "Grace") }
  let(:ada) { account("seeker", "Ada") }
  let(:bob) { account("seeker", "Bob") }
  let(:job) do
    Job.create!(title: "Welder", company: "Iron & Co", location: "Leeds", description: "Steel", user_id: grace.id)
  end
  let(:letter) { "I have joined steel for years." }
  let(:bytes) { "%PDF-1.7\n\x00\xFFAda's life\n".b }

  def cv(content, name = "ada.pdf", type = "application/pdf")
    Rack::Test::UploadedFile.new(StringIO.new(content), type, true, original_filename: name)
  end

  def apply(user, fields)
    post "/jobs/#{job.id}/applications", params: fields, headers: user ? as(user) : {}
  end

  it "stores an application with its CV and answers with job and applicant" do
    apply(ada, cover_letter: letter, cv: cv(bytes))
    expect(response).to have_http_status(201)
    expect(json).to eq(
      "id" => JobApplication.last.id,
      "cover_letter" => letter,
      "cv" => { "name" => "ada.pdf", "size" => bytes.bytesize },
      "job" => { "id" => job.id, "title" => "Welder", "company" => "Iron & Co" },
      "applicant" => { "id" => ada.id, "name" => "Ada" }
    )
    expect(CvStore.keys).to eq([JobApplication.last.cv_key])
    expect(CvStore.read(CvStore.keys.first)).to eq(bytes)
  end

  it "refuses a CV that is missing, no PDF or too large and stores nothing" do
    {
      nil => "can't be blank",
      "ada.pdf" => "can't be blank",
      cv("MZ\x90".b) => "must be a PDF",
      cv("notes about %PDF-1.7") => "must be a PDF",
      cv(bytes, "ada.exe") => "must be a PDF",
      cv(bytes.ljust(1_048_577, "x")) => "is too large"
    }.each do |file, message|
      apply(ada, { cover_letter: letter, cv: file }.compact)
      expect([response.status, json]).to eq([422, { "errors" => { "cv" => [message] } }])
    end
    expect([JobApplication.count, CvStore.keys]).to eq([0, []])
    apply(ada, cover_letter: letter, cv: cv(bytes.ljust(1_048_576, "x"), "ADA.PDF", "text/plain"))
    expect([response.status, json.dig("cv", "size")]).to eq([201, 1_048_576])
  end

  it "wants a cover letter, and takes one application of a seeker for a job" do
    apply(ada, cover_letter: "  ", cv: cv(bytes))
    expect([response.status, json]).to eq([422, { "errors" => { "cover_letter" => ["can't be blank"] } }])
    expect(CvStore.keys).to eq([])
    apply(ada, cover_letter: letter, cv: cv(bytes))
    apply(ada, cover_letter: "Me again", cv: cv(bytes))
    expect([response.status, json]).to eq([409, { "error" => "Already applied" }])
    apply(bob, cover_letter: "Me too", cv: cv(bytes))
    expect(response).to have_http_status(201)
    expect([JobApplication.count, CvStore.keys.size]).to eq([2, 2])
    apply(grace, cover_letter: "Myself", cv: cv(bytes))
    expect(response).to have_http_status(403)
    apply(nil, cover_letter: letter, cv: cv(bytes))
    expect(response).to have_http_status(401)
  end
end
